using Microsoft.EntityFrameworkCore;

using var shop = new Shop();
Console.WriteLine(await Report.CountAsync(shop));

static class Report
{
    public static async Task<int> CountAsync(Shop shop) =>
        await shop.Orders.CountAsync(order => order.Total > 10);
}

class Order
{
    public int Id { get; set; }
    public decimal Total { get; set; }
}

class Shop : DbContext
{
    public DbSet<Order> Orders => Set<Order>();

    protected override void OnConfiguring(DbContextOptionsBuilder options) =>
        options.UseNpgsql(Environment.GetEnvironmentVariable("CONNECTION_STRING"));
}
