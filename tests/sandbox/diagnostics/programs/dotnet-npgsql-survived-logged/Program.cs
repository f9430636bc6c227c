using Npgsql;

try
{
    using var connection = new NpgsqlConnection("Host=127.0.0.1;Port=1;Username=anna;Timeout=2");
    connection.Open();
}
catch (NpgsqlException error)
{
    Console.Error.WriteLine(error);
}
throw new FormatException("the orders in the file are no JSON");
