using Dapper;
using Microsoft.Data.Sqlite;

// Does a little of everything, so that the libraries it loads are those that programs load.
using var connection = new SqliteConnection("Data Source=:memory:");
connection.Open();
connection.Execute("create table customer (id integer primary key, name text not null)");
connection.Execute("insert into customer (name) values (@name)", new { name = "žluťoučký 日本語 😀" });
Console.WriteLine(connection.QuerySingle<Customer>("select id, name from customer where id = @id", new { id = 1 }).Name);
File.WriteAllLines(
    Environment.GetEnvironmentVariable("UOM_RESULT_FILE") ?? "loaded",
    AppDomain.CurrentDomain.GetAssemblies().Where(assembly => !assembly.IsDynamic).Select(assembly => assembly.Location));

record Customer(long Id, string Name);
