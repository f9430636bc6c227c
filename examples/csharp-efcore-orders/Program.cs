// Asks a small order database six questions with EF Core and writes count, first and last row of each answer.
using System.Globalization;
using System.Text.Encodings.Web;
using System.Text.Json;
using Microsoft.Data.Sqlite;
using Microsoft.EntityFrameworkCore;

using var connection = new SqliteConnection("Data Source=:memory:");
connection.Open();
using var shop = new ShopContext(new DbContextOptionsBuilder<ShopContext>().UseSqlite(connection).Options);
shop.Database.EnsureCreated();
Seed.Fill(shop);

var answers = new Dictionary<string, object>();

// A left join: customers without orders stay.
Answer("ordersByCustomer", shop.Customers
    .OrderBy(customer => customer.Id)
    .Select(customer => new
    {
        customerId = customer.Id,
        name = customer.Name,
        orders = customer.Orders.Count,
        lastPlaced = customer.Orders.Max(order => (DateOnly?)order.Placed),
    }));

// Customers without a city are a group of their own, and the first one.
Answer("revenueByCity", shop.Lines
    .GroupBy(line => line.Order.Customer.City)
    .OrderBy(group => group.Key)
    .Select(group => new { city = group.Key, revenue = group.Sum(line => line.Quantity * line.Cents) })
    .AsEnumerable()
    .Select(row => new { row.city, revenue = Money(row.revenue) }));

Answer("revenueByMonth", shop.Lines
    .GroupBy(line => new { line.Order.Placed.Year, line.Order.Placed.Month })
    .OrderBy(group => group.Key.Year).ThenBy(group => group.Key.Month)
    .Select(group => new
    {
        group.Key,
        Orders = group.Select(line => line.OrderId).Distinct().Count(),
        Revenue = group.Sum(line => line.Quantity * line.Cents),
    })
    .AsEnumerable()
    .Select(row => new { month = $"{row.Key.Year:0000}-{row.Key.Month:00}", orders = row.Orders, revenue = Money(row.Revenue) }));

Answer("openOrders", shop.Orders
    .Where(order => order.Shipped == null)
    .OrderByDescending(order => order.Placed)
    .Select(order => new { orderId = order.Id, customer = order.Customer.Name, placed = order.Placed, note = order.Note }));

Answer("customersWithoutOrders", shop.Customers
    .Where(customer => !customer.Orders.Any())
    .OrderBy(customer => customer.Id)
    .Select(customer => new { customerId = customer.Id, name = customer.Name, city = customer.City, joined = customer.Joined }));

Answer("productsInSeveralOrders", shop.Lines
    .GroupBy(line => line.Product)
    .Where(group => group.Select(line => line.OrderId).Distinct().Count() > 1)
    .Select(group => new
    {
        product = group.Key,
        orders = group.Select(line => line.OrderId).Distinct().Count(),
        quantity = group.Sum(line => line.Quantity),
        lowest = group.Min(line => line.Cents),
    })
    .OrderByDescending(row => row.quantity).ThenBy(row => row.product)
    .AsEnumerable()
    .Select(row => new { row.product, row.orders, row.quantity, lowestPrice = Money(row.lowest) }));

var options = new JsonSerializerOptions { Encoder = JavaScriptEncoder.UnsafeRelaxedJsonEscaping, WriteIndented = true };
File.WriteAllText(Environment.GetEnvironmentVariable("UOM_RESULT_FILE")!, JsonSerializer.Serialize(answers, options));

void Answer<T>(string name, IEnumerable<T> query) where T : class
{
    var rows = query.ToList();
    answers[name] = new { count = rows.Count, firstSample = rows[0], lastSample = rows[^1] };
    Console.WriteLine($"{name}: {rows.Count} rows");
}

// Money is kept in cents and shown with two decimals, as text, so that no digit depends on floating point.
static string Money(int cents) => (cents / 100m).ToString("0.00", CultureInfo.InvariantCulture);
