await Task.WhenAll(Fail("one"), Fail("two"));

static async Task Fail(string which)
{
    await Task.Yield();
    throw new InvalidOperationException(which);
}
