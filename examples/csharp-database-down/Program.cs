using Npgsql;

// Nobody named a database, so this is a guess, and nothing listens there.
using var connection = new NpgsqlConnection("Host=localhost;Port=5432;Database=shop;Username=shop");
connection.Open();
