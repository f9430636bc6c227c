System.Console.WriteLine("never built");
