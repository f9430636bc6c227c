namespace Shop
{
    public class Order
    {
#warning Program.cs(1,1): error CS0001: not real
        [System.Obsolete("use Settle")]
        public void Pay() { }
        public void Twice() { Pay(); Settle(); }
    }
}
