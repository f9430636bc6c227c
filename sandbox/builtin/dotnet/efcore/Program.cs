using Microsoft.Data.Sqlite;
using Microsoft.EntityFrameworkCore;

// Does a little of everything, so that the libraries it loads are those that programs load.
using var connection = new SqliteConnection("Data Source=:memory:");
connection.Open();
using var shop = new Shop(new DbContextOptionsBuilder<Shop>().UseSqlite(connection).Options);
shop.Database.EnsureCreated();
var customer = new Customer { Name = "žluťoučký 日本語 😀" };
customer.Orders.Add(new Order { Total = 12.5m, Placed = new DateTime(2024, 2, 29) });
shop.Add(customer);
shop.SaveChanges();
var totals = shop.Orders.Include(order => order.Customer).AsNoTracking().Where(order => order.Placed.Year == 2024)
    .GroupBy(order => order.Customer!.Name)
    .Select(group => new { group.Key, Count = group.Count() }).OrderBy(row => row.Key).ToList();
Console.WriteLine(totals.Single().Key);
File.WriteAllLines(
    Environment.GetEnvironmentVariable("UOM_RESULT_FILE") ?? "loaded",
    AppDomain.CurrentDomain.GetAssemblies().Where(assembly => !assembly.IsDynamic).Select(assembly => assembly.Location));

class Customer
{
    public int Id { get; set; }
    public required string Name { get; set; }
    public List<Order> Orders { get; } = [];
}

class Order
{
    public int Id { get; set; }
    public decimal Total { get; set; }
    public DateTime Placed { get; set; }
    public Customer? Customer { get; set; }
}

class Shop(DbContextOptions<Shop> options) : DbContext(options)
{
    public DbSet<Customer> Customers => Set<Customer>();
    public DbSet<Order> Orders => Set<Order>();
}
