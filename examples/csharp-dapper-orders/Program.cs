// Asks a small order database six questions with Dapper and writes count, first and last row of each answer.
using System.Globalization;
using System.Text.Encodings.Web;
using System.Text.Json;
using Dapper;
using Microsoft.Data.Sqlite;

using var connection = new SqliteConnection("Data Source=:memory:");
connection.Open();
Seed.Fill(connection);

var answers = new Dictionary<string, object>();

// A left join: customers without orders stay.
Answer("ordersByCustomer", connection.Query<CustomerOrders>("""
    select c.id as CustomerId, c.name as Name, count(o.id) as Orders, max(o.placed) as LastPlaced
    from customers c left join orders o on o.customer_id = c.id
    group by c.id, c.name order by c.id
    """));

// Customers without a city are a group of their own, and the first one.
Answer("revenueByCity", connection.Query<(string? City, long Cents)>("""
    select c.city, sum(l.quantity * l.cents)
    from customers c join orders o on o.customer_id = c.id join lines l on l.order_id = o.id
    group by c.city order by c.city
    """).Select(row => new { city = row.City, revenue = Money(row.Cents) }));

Answer("revenueByMonth", connection.Query<(string Month, long Orders, long Cents)>("""
    select strftime('%Y-%m', o.placed) as month, count(distinct o.id), sum(l.quantity * l.cents)
    from orders o join lines l on l.order_id = o.id
    group by month order by month
    """).Select(row => new { month = row.Month, orders = row.Orders, revenue = Money(row.Cents) }));

Answer("openOrders", connection.Query<OpenOrder>("""
    select o.id as OrderId, c.name as Customer, o.placed as Placed, o.note as Note
    from orders o join customers c on c.id = o.customer_id
    where o.shipped is null order by o.placed desc
    """));

Answer("customersWithoutOrders", connection.Query<Idle>("""
    select c.id as CustomerId, c.name as Name, c.city as City, c.joined as Joined from customers c
    where not exists (select 1 from orders o where o.customer_id = c.id) order by c.id
    """));

Answer("productsInSeveralOrders", connection.Query<(string Product, long Orders, long Quantity, long Cents)>("""
    select product, count(distinct order_id), sum(quantity) as total, min(cents)
    from lines group by product having count(distinct order_id) > @orders order by total desc, product
    """, new { orders = 1 }).Select(row => new
{
    product = row.Product,
    orders = row.Orders,
    quantity = row.Quantity,
    lowestPrice = Money(row.Cents),
}));

var options = new JsonSerializerOptions
{
    Encoder = JavaScriptEncoder.UnsafeRelaxedJsonEscaping,
    PropertyNamingPolicy = JsonNamingPolicy.CamelCase,
    WriteIndented = true,
};
File.WriteAllText(Environment.GetEnvironmentVariable("UOM_RESULT_FILE")!, JsonSerializer.Serialize(answers, options));

void Answer<T>(string name, IEnumerable<T> query) where T : class
{
    var rows = query.ToList();
    answers[name] = new { count = rows.Count, firstSample = rows[0], lastSample = rows[^1] };
    Console.WriteLine($"{name}: {rows.Count} rows");
}

// Money is kept in cents and shown with two decimals, as text, so that no digit depends on floating point.
static string Money(long cents) => (cents / 100m).ToString("0.00", CultureInfo.InvariantCulture);

record CustomerOrders(long CustomerId, string Name, long Orders, string? LastPlaced);

record OpenOrder(long OrderId, string Customer, string Placed, string? Note);

record Idle(long CustomerId, string Name, string? City, string Joined);

static class Seed
{
    const string Schema = """
        create table customers (id integer primary key, name text not null, city text, joined text not null);
        create table orders (id integer primary key, customer_id integer not null references customers,
            placed text not null, shipped text, note text);
        create table lines (order_id integer not null references orders, product text not null, quantity integer, cents integer);
        """;

    static readonly (int Id, string Name, string? City, string Joined)[] Customers =
    [
        (1, "Anna Nováková", "Brno", "2023-01-15"),
        (2, "李小龙", "上海", "2023-03-01"),
        (3, "Ελένη Παπαδοπούλου", null, "2023-06-30"),
        (4, "O'Brien & Sons", "Cork", "2023-12-31"),
        (5, "Мария Иванова", "Brno", "2024-02-29"),
        (6, "😀 Smile \"Ltd\"", null, "2024-03-01"),
    ];

    static readonly (int Id, int Customer, string Placed, string? Shipped, string? Note)[] Orders =
    [
        (101, 1, "2024-01-10", "2024-01-12", "first order"),
        (102, 2, "2024-01-31", "2024-02-02", null),
        (103, 1, "2024-02-29", null, "příště rychleji"),
        (104, 3, "2024-02-29", "2024-03-04", ""),
        (105, 4, "2024-03-15", null, null),
        (106, 5, "2024-03-31", "2024-04-01", "до двери"),
        (107, 2, "2024-12-31", null, "跨年"),
    ];

    static readonly (int Order, string Product, int Quantity, int Cents)[] Lines =
    [
        (101, "Keyboard", 1, 4990),
        (101, "Mouse", 2, 1995),
        (102, "Monitor", 2, 18900),
        (102, "Cable", 5, 349),
        (103, "Mouse", 1, 1995),
        (103, "Tea 茶", 10, 99),
        (104, "Keyboard", 3, 4491),
        (105, "Cable", 100, 299),
        (105, "Monitor", 1, 19999),
        (106, "Tea 茶", 1, 105),
        (107, "Monitor", 4, 17525),
        (107, "Keyboard", 1, 4990),
    ];

    public static void Fill(SqliteConnection connection)
    {
        connection.Execute(Schema);
        using var transaction = connection.BeginTransaction();
        connection.Execute("insert into customers values (@Id, @Name, @City, @Joined)",
            Customers.Select(row => new { row.Id, row.Name, row.City, row.Joined }), transaction);
        connection.Execute("insert into orders values (@Id, @Customer, @Placed, @Shipped, @Note)",
            Orders.Select(row => new { row.Id, row.Customer, row.Placed, row.Shipped, row.Note }), transaction);
        connection.Execute("insert into lines values (@Order, @Product, @Quantity, @Cents)",
            Lines.Select(row => new { row.Order, row.Product, row.Quantity, row.Cents }), transaction);
        transaction.Commit();
    }
}
