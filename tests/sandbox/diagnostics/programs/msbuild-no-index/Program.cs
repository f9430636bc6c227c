Console.WriteLine("never built");
