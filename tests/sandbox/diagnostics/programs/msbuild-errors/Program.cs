var total = 3;
Console.WriteLine(totl);
string name = null;
