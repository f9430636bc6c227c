namespace Uom;

/// <summary>Lets NHibernate work with Microsoft.Data.Sqlite, for which it has no driver of its own.</summary>
/// <remarks>Goes with the dialect <c>SQLiteDialect</c> and the property <c>hbm2ddl.keywords</c> set to <c>none</c>.</remarks>
public class SqliteDriver : NHibernate.Driver.ReflectionBasedDriver
{
    public SqliteDriver()
        : base(
            "Microsoft.Data.Sqlite",
            "Microsoft.Data.Sqlite",
            "Microsoft.Data.Sqlite.SqliteConnection",
            "Microsoft.Data.Sqlite.SqliteCommand")
    {
    }

    public override bool UseNamedPrefixInSql => true;

    public override bool UseNamedPrefixInParameter => true;

    public override string NamedPrefix => "@";

    public override bool SupportsMultipleOpenReaders => false;
}
