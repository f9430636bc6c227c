// Asks the order database six questions with EF Core and writes count, first and last row of each answer.
using System.Globalization;
using System.Text.Encodings.Web;
using System.Text.Json;
using Microsoft.EntityFrameworkCore;

var database = Environment.GetEnvironmentVariable("CONNECTION_STRING");
using var shop = new ShopContext(new DbContextOptionsBuilder<ShopContext>().UseNpgsql(database).Options);

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

// Customers without a city are a group of their own. PostgreSQL sorts null last, the answer wants it first.
Answer("revenueByCity", shop.OrderLines
    .GroupBy(line => line.Order.Customer.City)
    .OrderBy(group => group.Key != null).ThenBy(group => group.Key)
    .Select(group => new { city = group.Key, revenue = group.Sum(line => line.Quantity * line.Price) })
    .AsEnumerable()
    .Select(row => new { row.city, revenue = Money(row.revenue) }));

Answer("revenueByMonth", shop.OrderLines
    .GroupBy(line => new { line.Order.Placed.Year, line.Order.Placed.Month })
    .OrderBy(group => group.Key.Year).ThenBy(group => group.Key.Month)
    .Select(group => new
    {
        group.Key,
        Orders = group.Select(line => line.OrderId).Distinct().Count(),
        Revenue = group.Sum(line => line.Quantity * line.Price),
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

// Orders and products are many to many; the lines between them hold quantity and price.
Answer("productsInSeveralOrders", shop.Products
    .Where(product => product.Orders.Count > 1)
    .Select(product => new
    {
        product = product.Name,
        orders = product.Orders.Count,
        quantity = product.Lines.Sum(line => line.Quantity),
        lowest = product.Lines.Min(line => line.Price),
    })
    .OrderByDescending(row => row.quantity).ThenBy(row => row.product)
    .AsEnumerable()
    .Select(row => new { row.product, row.orders, row.quantity, lowestPrice = Money(row.lowest) }));

var options = new JsonSerializerOptions { Encoder = JavaScriptEncoder.UnsafeRelaxedJsonEscaping, WriteIndented = true };
File.WriteAllText(Environment.GetEnvironmentVariable("EFCORE_RESULTS_PATH")!, JsonSerializer.Serialize(answers, options));

void Answer<T>(string name, IEnumerable<T> query) where T : class
{
    var rows = query.ToList();
    answers[name] = new { count = rows.Count, firstSample = rows[0], lastSample = rows[^1] };
    Console.WriteLine($"{name}: {rows.Count} rows");
}

// Money is text with two decimals, so that no digit depends on floating point.
static string Money(decimal amount) => amount.ToString("0.00", CultureInfo.InvariantCulture);
