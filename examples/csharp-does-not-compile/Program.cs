var orders = new List<Order> { new(101, "Anna") };
int first = orders[0].Customer;
Console.WriteLine(first + orders.Lenght);

record Order(int Id, string Customer);
