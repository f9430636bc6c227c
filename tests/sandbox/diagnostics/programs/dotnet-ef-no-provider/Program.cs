using Microsoft.EntityFrameworkCore;

using var shop = new Shop();
Console.WriteLine(shop.Orders.Count());

class Order
{
    public int Id { get; set; }
}

class Shop : DbContext
{
    public DbSet<Order> Orders => Set<Order>();
}
