# rack-oauth2 in a Rack application of one file, as its sample does: https://github.com/nov/rack-oauth2
require 'json'
require 'pstore'
require 'securerandom'
require 'rack/oauth2'
require 'rack/handler/puma'

PLACE = JSON.parse(ARGV[0])
CLIENT = PLACE['client']
# Users by code, access token and refresh token.
GRANTS = PStore.new("#{PLACE['folder']}/grants", true)
PAGE = '<form method="post"><input name="username"> <input name="password" type="password">' \
       '<button name="approve" value="yes">Allow</button> <button name="approve" value="no">Deny</button></form>'.freeze

def issue(kind, user)
  SecureRandom.hex(32).tap { |text| GRANTS.transaction { GRANTS["#{kind} #{text}"] = user } }
end

def owner(kind, text)
  GRANTS.transaction(true) { GRANTS["#{kind} #{text}"] }
end

AUTHORIZE = Rack::OAuth2::Server::Authorize.new do |req, res|
  req.bad_request! unless req.client_id == CLIENT['id']
  res.redirect_uri = req.verify_redirect_uri!(CLIENT['redirectUri'])
  next res.write(PAGE) if req.get?

  form = req.POST
  user = PLACE['users'].find { |one| one.values_at('name', 'password') == form.values_at('username', 'password') }
  req.access_denied! unless user && form['approve'] == 'yes'
  res.code = issue(:code, user['name'])
  res.approve!
end

# A refresh answers with a new access token alone.
TOKEN = Rack::OAuth2::Server::Token.new do |req, res|
  req.invalid_client! unless [req.client_id, req.client_secret] == CLIENT.values_at('id', 'secret')
  case req.grant_type
  when :authorization_code
    user = GRANTS.transaction { GRANTS.delete("code #{req.code}") } || req.invalid_grant!
    refresh_token = issue(:refresh, user)
  when :refresh_token
    user = owner(:refresh, req.refresh_token) || req.invalid_grant!
  else
    req.unsupported_grant_type!
  end
  res.access_token = Rack::OAuth2::AccessToken::Bearer.new(
    access_token: issue(:access, user), refresh_token: refresh_token, expires_in: 3600
  )
end

ME = Rack::OAuth2::Server::Resource::Bearer.new(
  ->(env) { [200, { 'Content-Type' => 'application/json' }, [{ id: env['rack.oauth2.access_token'] }.to_json]] }
) { |req| owner(:access, req.access_token) || req.invalid_token! }

# The library has no revocation endpoint: an application deletes what its user disconnects.
DISCONNECT = lambda do |env|
  user = env['PATH_INFO'].delete_prefix('/')
  GRANTS.transaction { GRANTS.roots.each { |key| GRANTS.delete(key) if GRANTS[key] == user } }
  [204, {}, []]
end

ME_OR_401 = lambda do |env|
  status, headers, body = ME.call(env)
  env['rack.oauth2.access_token'] ? [status, headers, body] : [401, {}, []]
end

application = Rack::URLMap.new(
  '/authorize' => AUTHORIZE, '/token' => TOKEN, '/me' => ME_OR_401, '/authorizations' => DISCONNECT
)
Rack::Handler::Puma.run(application, Host: '127.0.0.1', Port: PLACE['port'], Threads: '1:4')
