# The portal of LemonLDAP::NG with its demonstration users, configured as its documentation says: https://lemonldap-ng.org
use strict;
use warnings;
use JSON;
use Plack::Runner;

my $place  = decode_json( $ARGV[0] );
my $folder = $place->{folder};

sub write_file {
    my ( $name, $text ) = @_;
    open my $file, '>', "$folder/$name" or die $!;
    print $file $text;
    close $file;
}

unless ( -e "$folder/lmConf-1.json" ) {
    mkdir "$folder/$_" for qw(sessions sessions/lock psessions psessions/lock cache);
    my $key    = `openssl genrsa 2048 2>/dev/null`;
    write_file( 'key.pem', $key );
    my $public = `openssl rsa -in $folder/key.pem -pubout 2>/dev/null`;
    my $generate = 'Lemonldap::NG::Common::Apache::Session::Generate::SHA256';
    my %storage  = (
        Directory      => "$folder/sessions",
        LockDirectory  => "$folder/sessions/lock",
        generateModule => $generate,
    );
    my %persistent = ( Directory => "$folder/psessions", LockDirectory => "$folder/psessions/lock" );
    my %cache      = ( cache_root => "$folder/cache", cache_depth => 3, default_expires_in => 600 );
    write_file(
        'lmConf-1.json',
        encode_json(
            {
                cfgNum           => 1,
                cfgAuthor        => 'tests',
                cfgDate          => 1,
                cfgVersion       => '2.16.1',
                key              => 'key of the tests',
                portal           => "$place->{origin}/",
                domain           => '127.0.0.1',
                cookieName       => 'lemonldap',
                securedCookie    => 0,
                authentication   => 'Demo',
                userDB           => 'Same',
                passwordDB       => 'Demo',
                whatToTrace      => '_whatToTrace',
                macros           => { _whatToTrace => '$_user' },
                demoExportedVars => { uid => 'uid', cn => 'cn', mail => 'mail' },
                globalStorage    => 'Apache::Session::File',
                globalStorageOptions       => \%storage,
                persistentStorage          => 'Apache::Session::File',
                persistentStorageOptions   => \%persistent,
                localSessionStorage        => 'Cache::FileCache',
                localSessionStorageOptions => { %cache, namespace => 'sessions' },
                locationRules              => {},
                issuerDBOpenIDConnectActivation       => 1,
                oidcServiceMetaDataIssuer             => $place->{origin},
                oidcServiceAllowAuthorizationCodeFlow => 1,
                oidcServicePrivateKeySig              => $key,
                oidcServicePublicKeySig               => $public,
                oidcServiceKeyIdSig                   => 'tests',
                oidcRPMetaDataExportedVars => { application => { name => 'cn' } },
                oidcRPMetaDataOptions      => {
                    application => {
                        oidcRPMetaDataOptionsClientID     => $place->{client}{id},
                        oidcRPMetaDataOptionsClientSecret => $place->{client}{secret},
                        oidcRPMetaDataOptionsRedirectUris => $place->{client}{redirectUri},
                        oidcRPMetaDataOptionsDisplayName  => 'Application',
                        oidcRPMetaDataOptionsIDTokenSignAlg => 'RS256',
                        oidcRPMetaDataOptionsRefreshToken => 1,
                        oidcRPMetaDataOptionsUserIDAttr   => 'uid',
                        oidcRPMetaDataOptionsBypassConsent => 0,
                    }
                },
            }
        )
    );
    write_file( 'lemonldap-ng.ini', <<"INI" );
[all]
logLevel = error
[configuration]
type = File
dirName = $folder
localStorage = Cache::FileCache
localStorageOptions = { 'namespace' => 'configuration', 'default_expires_in' => 600, 'cache_root' => '$folder/cache' }
[portal]
staticPrefix = /static
templateDir = /usr/share/lemonldap-ng/portal/templates
languages = en
INI
}

# Read when the portal is loaded.
$ENV{LLNG_DEFAULTCONFFILE} = "$folder/lemonldap-ng.ini";
require Lemonldap::NG::Portal::Main;
my $runner = Plack::Runner->new( server => 'HTTP::Server::PSGI', env => 'deployment' );
$runner->parse_options( '--host', '127.0.0.1', '--port', $place->{port} );
$| = 1;
print "starting\n";
$runner->run( Lemonldap::NG::Portal::Main->run( {} ) );
