Console.Error.WriteLine("Program.cs(1,1): error CS0001: not a compiler");
try { throw new InvalidOperationException("caught"); } catch (Exception error) { Console.Error.WriteLine(error); }
Environment.Exit(3);
