set -eu
. /opt/uom/dotnet.env
export NUGET_PACKAGES=/opt/uom/nuget/packages
mkdir -p /tmp/uom-crossgen
cd /tmp/uom-crossgen
cat > crossgen.csproj <<'EOF'
<Project Sdk="Microsoft.NET.Sdk">
  <PropertyGroup>
    <TargetFramework>net10.0</TargetFramework>
  </PropertyGroup>
  <ItemGroup>
    <PackageDownload Include="Microsoft.NETCore.App.Crossgen2.$(NETCoreSdkPortableRuntimeIdentifier)" Version="[$(BundledNETCoreAppPackageVersion)]" />
  </ItemGroup>
</Project>
EOF
/opt/uom/dotnet/dotnet restore -v quiet -p:NuGetAudit=false $sources ||
    echo "warning: no ahead-of-time compiler; programs with EF Core start about a second later"
cd /
rm -rf /tmp/uom-crossgen
