class Program
{
    static int Add(int a, int b) => a + b;
}
