Console.WriteLine("žluťoučký 日本語 😀");
File.WriteAllText(Environment.GetEnvironmentVariable("UOM_RESULT_FILE") ?? "loaded", "");
