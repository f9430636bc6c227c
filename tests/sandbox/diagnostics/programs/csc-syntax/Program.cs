Console.WriteLine("one")
foreach (var item in new[] { 1, 2 })
{
    Console.WriteLine(item);
