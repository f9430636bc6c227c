using System.Net.Http;

using var client = new HttpClient();
Console.WriteLine(await client.GetStringAsync(Environment.GetEnvironmentVariable("ADDRESS") ?? "https://api.example.com/orders"));
