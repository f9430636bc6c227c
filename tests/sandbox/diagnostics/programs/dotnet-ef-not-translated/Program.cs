using Microsoft.EntityFrameworkCore;

using var shop = new Shop();
shop.Database.EnsureCreated();
var large = shop.Orders.Where(order => Rules.IsLarge(order)).ToList();
Console.WriteLine(large.Count);

static class Rules
{
    public static bool IsLarge(Order order) => order.Total > 10;
}

class Order
{
    public int Id { get; set; }
    public decimal Total { get; set; }
}

class Shop : DbContext
{
    public DbSet<Order> Orders => Set<Order>();

    protected override void OnConfiguring(DbContextOptionsBuilder options) => options.UseSqlite("Data Source=:memory:");
}
