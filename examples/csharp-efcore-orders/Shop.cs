using Microsoft.EntityFrameworkCore;

public class Customer
{
    public int Id { get; set; }
    public required string Name { get; set; }
    public string? City { get; set; }
    public DateOnly Joined { get; set; }
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
    public List<Line> Lines { get; } = [];
}

public class Line
{
    public int Id { get; set; }
    public int OrderId { get; set; }
    public Order Order { get; set; } = null!;
    public required string Product { get; set; }
    public int Quantity { get; set; }
    public int Cents { get; set; }
}

public class ShopContext(DbContextOptions<ShopContext> options) : DbContext(options)
{
    public DbSet<Customer> Customers => Set<Customer>();
    public DbSet<Order> Orders => Set<Order>();
    public DbSet<Line> Lines => Set<Line>();
}

public static class Seed
{
    public static void Fill(ShopContext shop)
    {
        shop.Customers.AddRange(
            Customer(1, "Anna Nováková", "Brno", "2023-01-15"),
            Customer(2, "李小龙", "上海", "2023-03-01"),
            Customer(3, "Ελένη Παπαδοπούλου", null, "2023-06-30"),
            Customer(4, "O'Brien & Sons", "Cork", "2023-12-31"),
            Customer(5, "Мария Иванова", "Brno", "2024-02-29"),
            Customer(6, "😀 Smile \"Ltd\"", null, "2024-03-01"));
        shop.Orders.AddRange(
            Order(101, 1, "2024-01-10", "2024-01-12", "first order"),
            Order(102, 2, "2024-01-31", "2024-02-02", null),
            Order(103, 1, "2024-02-29", null, "příště rychleji"),
            Order(104, 3, "2024-02-29", "2024-03-04", ""),
            Order(105, 4, "2024-03-15", null, null),
            Order(106, 5, "2024-03-31", "2024-04-01", "до двери"),
            Order(107, 2, "2024-12-31", null, "跨年"));
        shop.Lines.AddRange(
            Line(101, "Keyboard", 1, 4990),
            Line(101, "Mouse", 2, 1995),
            Line(102, "Monitor", 2, 18900),
            Line(102, "Cable", 5, 349),
            Line(103, "Mouse", 1, 1995),
            Line(103, "Tea 茶", 10, 99),
            Line(104, "Keyboard", 3, 4491),
            Line(105, "Cable", 100, 299),
            Line(105, "Monitor", 1, 19999),
            Line(106, "Tea 茶", 1, 105),
            Line(107, "Monitor", 4, 17525),
            Line(107, "Keyboard", 1, 4990));
        shop.SaveChanges();
    }

    private static Customer Customer(int id, string name, string? city, string joined) =>
        new() { Id = id, Name = name, City = city, Joined = DateOnly.Parse(joined) };

    private static Order Order(int id, int customer, string placed, string? shipped, string? note) => new()
    {
        Id = id,
        CustomerId = customer,
        Placed = DateOnly.Parse(placed),
        Shipped = shipped is null ? null : DateOnly.Parse(shipped),
        Note = note,
    };

    private static Line Line(int order, string product, int quantity, int cents) =>
        new() { OrderId = order, Product = product, Quantity = quantity, Cents = cents };
}
