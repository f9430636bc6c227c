var kept = new List<byte[]>();
while (true)
{
    kept.Add(new byte[1024 * 1024]);
}
