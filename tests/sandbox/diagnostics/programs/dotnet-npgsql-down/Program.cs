using Npgsql;

var text = Environment.GetEnvironmentVariable("CONNECTION_STRING")!;
using var connection = new NpgsqlConnection(text);
connection.Open();
Console.WriteLine("open");
