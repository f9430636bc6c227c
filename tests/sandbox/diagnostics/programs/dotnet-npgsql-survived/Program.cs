using Npgsql;

try
{
    using var connection = new NpgsqlConnection("Host=127.0.0.1;Port=1;Username=a;Timeout=2");
    connection.Open();
}
catch (NpgsqlException error)
{
    Console.WriteLine($"no database, so the orders come from a file: {error.Message}");
}
Console.Error.WriteLine("Npgsql.NpgsqlException (0x80004005): Failed to connect to 10.0.0.1:5432");
throw new FormatException("Failed to connect to 10.0.0.1:5432");
