using System.IO;

var path = Environment.GetEnvironmentVariable("FULL") ?? "/dev/full";
using var writer = new StreamWriter(path);
for (var row = 0; row < 100_000; row++)
    writer.WriteLine("order");
