using Microsoft.Data.SqlClient;

var text = Environment.GetEnvironmentVariable("CONNECTION_STRING")!;
using var connection = new SqlConnection(text);
connection.Open();
Console.WriteLine("open");
