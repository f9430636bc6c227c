using Npgsql;

try
{
    using var connection = new NpgsqlConnection(Environment.GetEnvironmentVariable("CONNECTION_STRING")!);
    connection.Open();
    return 0;
}
catch (Exception error)
{
    Console.Error.WriteLine($"cannot read the orders: {error}");
    return 3;
}
