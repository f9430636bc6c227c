using Microsoft.EntityFrameworkCore;

using var shop = new Shop();
shop.Database.EnsureCreated();
Console.WriteLine(shop.Orders.Count());

class OrderLine
{
    public int Number { get; set; }
    public string? Product { get; set; }
}

class Shop : DbContext
{
    public DbSet<OrderLine> Orders => Set<OrderLine>();

    protected override void OnConfiguring(DbContextOptionsBuilder options) => options.UseSqlite("Data Source=:memory:");
}
