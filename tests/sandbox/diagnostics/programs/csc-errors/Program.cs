using System;

Console.WriteLine(total);
int count = "twelve";
var unused = 5;
Order order = null;
order.Pay(1);

class Customer
{
    public string Name { get; set; }
    public int Total() { }
}
