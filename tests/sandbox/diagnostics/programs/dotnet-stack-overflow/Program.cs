Console.WriteLine(Depth(0));

static int Depth(int level) => Depth(level + 1) + 1;
