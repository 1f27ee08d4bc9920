#!/usr/bin/env bash
# Software: googleauth 0.13.0 for Ruby (Debian ruby-googleauth 0.13.0-3), Google::Auth::IDTokens::Verifier with a JwkHttpKeySource, which
#   its comments show for key sets of others; with ruby-jwt 2.5.0 and OpenSSL 3.0
# Behaviour: It asks for the key set at most once an hour (`retry_interval`), and an attempt that failed counts. Until then genuine tokens
#   have the error of forged ones. With OpenSSL 3 it can take no RSA key: the first genuine token raises a PKeyError, all others have
#   the error of forged ones.
# Seen: 2026-11-30
#   key set 503: KeySourceError
#   a moment later, key set 200: SignatureError Token not verified as issued by Google, fetches 1
#   another source, key set 200: PKeyError rsa#set_key= is incompatible with OpenSSL 3.0
#   again: SignatureError Token not verified as issued by Google, fetches 1
# Hub: a receiver that answers 204 to SignatureError acknowledges and loses each event, for an hour or for ever: docs/webhooks.md,
#   "What libraries do with a new key"
# Source: googleauth 0.13.0, lib/googleauth/id_tokens/key_sources.rb: refresh_keys sets @allow_refresh_at before it asks, extract_rsa_key;
#   verifier.rb, verify
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

version=$(dpkg-query -W -f '${Version}' ruby-googleauth)
echo "ruby-googleauth $version"
[ "$version" = 0.13.0-3 ]

cat >verify.rb <<'RUBY'
require "googleauth"
require "googleauth/id_tokens"
require "json"
require "socket"

key = OpenSSL::PKey::RSA.new 2048
encoded = ->(number) { Base64.urlsafe_encode64 number.to_s(2), padding: false }
key_set = JSON.generate keys: [{ kty: "RSA", kid: "one", alg: "RS256", use: "sig", n: encoded.(key.n), e: encoded.(key.e) }]
now = Time.now.to_i
claims = { iss: "https://hub.example", aud: "https://receiver.example/", iat: now - 60, exp: now + 3600 }
token = JWT.encode claims, key, "RS256", { kid: "one" }

status = 503
fetches = 0
server = TCPServer.new "127.0.0.1", 0
Thread.new do
  loop do
    client = server.accept
    nil until ["\r\n", nil].include? client.gets
    fetches += 1
    body = status == 200 ? key_set : ""
    client.write "HTTP/1.1 #{status} x\r\nContent-Length: #{body.bytesize}\r\nConnection: close\r\n\r\n#{body}"
    client.close
  end
end

verifier = lambda do
  source = Google::Auth::IDTokens::JwkHttpKeySource.new "http://127.0.0.1:#{server.addr[1]}/jwks.json"
  Google::Auth::IDTokens::Verifier.new key_source: source, aud: claims[:aud], iss: claims[:iss]
end
outcome = lambda do |one|
  one.verify token
  "verified"
rescue StandardError => e
  name = e.class.name.split("::").last
  name == "KeySourceError" ? name : "#{name} #{e.message}"
end

one = verifier.call
puts "key set 503: #{outcome.(one)}"
status = 200
puts "a moment later, key set 200: #{outcome.(one)}, fetches #{fetches}"
fetches = 0
one = verifier.call
puts "another source, key set 200: #{outcome.(one)}"
puts "again: #{outcome.(one)}, fetches #{fetches}"
RUBY
ruby verify.rb | tee seen
diff seen - <<'SEEN'
key set 503: KeySourceError
a moment later, key set 200: SignatureError Token not verified as issued by Google, fetches 1
another source, key set 200: PKeyError rsa#set_key= is incompatible with OpenSSL 3.0
again: SignatureError Token not verified as issued by Google, fetches 1
SEEN
echo 'as described'
