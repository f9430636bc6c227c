using System;
using System.Collections.Generic;

namespace Shop;

class OrderException : Exception
{
    public OrderException(string message, Exception inner) : base(message, inner) { }
}

static class Program
{
    static int First(List<int> amounts) => amounts[0];

    static void Main()
    {
        Console.Error.WriteLine("reading orders");
        try
        {
            First(new List<int>());
        }
        catch (ArgumentOutOfRangeException error)
        {
            throw new OrderException("no orders\nfor customer 7", error);
        }
    }
}
