using System.Text.RegularExpressions;
using Microsoft.EntityFrameworkCore;

public class Customer
{
    public int Id { get; set; }
    public required string Name { get; set; }
    public string? City { get; set; }
    public DateOnly Joined { get; set; }
    public List<Order> Orders { get; } = [];
}

public class Product
{
    public int Id { get; set; }
    public required string Name { get; set; }
    public List<OrderLine> Lines { get; } = [];
    public List<Order> Orders { get; } = [];
}

public class Order
{
    public int Id { get; set; }
    public int CustomerId { get; set; }
    public Customer Customer { get; set; } = null!;
    public DateOnly Placed { get; set; }
    public DateOnly? Shipped { get; set; }
    public string? Note { get; set; }
    public List<OrderLine> Lines { get; } = [];
    public List<Product> Products { get; } = [];
}

public class OrderLine
{
    public int OrderId { get; set; }
    public Order Order { get; set; } = null!;
    public int ProductId { get; set; }
    public Product Product { get; set; } = null!;
    public int Quantity { get; set; }
    public decimal Price { get; set; }
}

public class ShopContext(DbContextOptions<ShopContext> options) : DbContext(options)
{
    public DbSet<Customer> Customers => Set<Customer>();
    public DbSet<Product> Products => Set<Product>();
    public DbSet<Order> Orders => Set<Order>();
    public DbSet<OrderLine> OrderLines => Set<OrderLine>();

    protected override void OnModelCreating(ModelBuilder model)
    {
        model.Entity<OrderLine>().HasKey(line => new { line.OrderId, line.ProductId });
        model.Entity<Order>().HasMany(order => order.Products).WithMany(product => product.Orders).UsingEntity<OrderLine>(
            join => join.HasOne(line => line.Product).WithMany(product => product.Lines),
            join => join.HasOne(line => line.Order).WithMany(order => order.Lines));
        foreach (var entity in model.Model.GetEntityTypes())
        {
            entity.SetTableName(InDatabase(entity.GetTableName()!));
            foreach (var property in entity.GetProperties())
            {
                property.SetColumnName(InDatabase(property.Name));
            }
        }
    }

    // The names of the database: order_lines for OrderLines.
    private static string InDatabase(string name) => Regex.Replace(name, "(?<=[a-z])([A-Z])", "_$1").ToLowerInvariant();
}
