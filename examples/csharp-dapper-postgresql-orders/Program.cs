// Asks the order database six questions with Dapper and writes count, first and last row of each answer.
using System.Globalization;
using System.Text.Encodings.Web;
using System.Text.Json;
using Dapper;
using Npgsql;

var database = Environment.GetEnvironmentVariable("CONNECTION_STRING");
using var connection = new NpgsqlConnection(database);
connection.Open();

var answers = new Dictionary<string, object>();

// A left join: customers without orders stay.
Answer("ordersByCustomer", connection.Query<CustomerOrders>("""
    select c.id as CustomerId, c.name as Name, count(o.id) as Orders, max(o.placed) as LastPlaced
    from customers c left join orders o on o.customer_id = c.id
    group by c.id, c.name order by c.id
    """));

// Customers without a city are a group of their own. PostgreSQL sorts null last, the answer wants it first.
Answer("revenueByCity", connection.Query<(string? City, decimal Revenue)>("""
    select c.city, sum(l.quantity * l.price)
    from customers c join orders o on o.customer_id = c.id join order_lines l on l.order_id = o.id
    group by c.city order by c.city nulls first
    """).Select(row => new { city = row.City, revenue = Money(row.Revenue) }));

Answer("revenueByMonth", connection.Query<(string Month, long Orders, decimal Revenue)>("""
    select to_char(o.placed, 'YYYY-MM') as month, count(distinct o.id), sum(l.quantity * l.price)
    from orders o join order_lines l on l.order_id = o.id
    group by month order by month
    """).Select(row => new { month = row.Month, orders = row.Orders, revenue = Money(row.Revenue) }));

Answer("openOrders", connection.Query<OpenOrder>("""
    select o.id as OrderId, c.name as Customer, o.placed as Placed, o.note as Note
    from orders o join customers c on c.id = o.customer_id
    where o.shipped is null order by o.placed desc
    """));

Answer("customersWithoutOrders", connection.Query<Idle>("""
    select c.id as CustomerId, c.name as Name, c.city as City, c.joined as Joined from customers c
    where not exists (select 1 from orders o where o.customer_id = c.id) order by c.id
    """));

Answer("productsInSeveralOrders", connection.Query<(string Product, long Orders, long Quantity, decimal Price)>("""
    select p.name, count(distinct l.order_id), sum(l.quantity) as total, min(l.price)
    from products p join order_lines l on l.product_id = p.id
    group by p.name having count(distinct l.order_id) > @orders order by total desc, p.name
    """, new { orders = 1 }).Select(row => new
{
    product = row.Product,
    orders = row.Orders,
    quantity = row.Quantity,
    lowestPrice = Money(row.Price),
}));

var options = new JsonSerializerOptions
{
    Encoder = JavaScriptEncoder.UnsafeRelaxedJsonEscaping,
    PropertyNamingPolicy = JsonNamingPolicy.CamelCase,
    WriteIndented = true,
};
File.WriteAllText(Environment.GetEnvironmentVariable("DAPPER_RESULTS_PATH")!, JsonSerializer.Serialize(answers, options));

void Answer<T>(string name, IEnumerable<T> query) where T : class
{
    var rows = query.ToList();
    answers[name] = new { count = rows.Count, firstSample = rows[0], lastSample = rows[^1] };
    Console.WriteLine($"{name}: {rows.Count} rows");
}

// Money is text with two decimals, so that no digit depends on floating point.
static string Money(decimal amount) => amount.ToString("0.00", CultureInfo.InvariantCulture);

class CustomerOrders
{
    public int CustomerId { get; init; }
    public required string Name { get; init; }
    public long Orders { get; init; }
    public DateOnly? LastPlaced { get; init; }
}

class OpenOrder
{
    public int OrderId { get; init; }
    public required string Customer { get; init; }
    public DateOnly Placed { get; init; }
    public string? Note { get; init; }
}

class Idle
{
    public int CustomerId { get; init; }
    public required string Name { get; init; }
    public string? City { get; init; }
    public DateOnly Joined { get; init; }
}
