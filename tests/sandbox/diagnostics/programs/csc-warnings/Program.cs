string? name = null;
int unused;
Console.WriteLine(name.Length);
