#!/usr/bin/env bash
# Software: Apache 2.4.71 (Debian apache2-bin 2.4.71-1~deb12u1) with mod_cgi, with mod_proxy_fcgi and PHP-FPM 8.2.36 (Debian php8.2-fpm
#   8.2.36-1~deb12u1), with mod_wsgi 4.9.4 (Debian libapache2-mod-wsgi-py3 4.9.4-1+b2), and with mod_php
# Behaviour: A program behind Apache, by CGI, FastCGI, WSGI or mod_php, does not find the header Authorization in its environment or
#   $_SERVER. `CGIPassAuth On`, for mod_wsgi `WSGIPassAuthorization On`, hands it over; so does the configuration that Debian has
#   for PHP-FPM (conf-available/php8.2-fpm.conf). getallheaders() of mod_php has it anyway.
# Seen: 2026-11-30, a POST with Authorization: Bearer token
#   CGI: none
#   PHP-FPM: none
#   mod_wsgi: none
#   mod_php: none
#   mod_php, getallheaders(): Bearer token
#   CGI, CGIPassAuth: Bearer token
#   PHP-FPM, CGIPassAuth: Bearer token
#   PHP-FPM, as Debian: Bearer token
#   mod_php, CGIPassAuth: Bearer token
#   mod_wsgi, WSGIPassAuthorization: Bearer token
# Hub: a receiver finds no token to verify, and refuses each push: docs/webhooks.md, "Verify the token"
# Source: Apache 2.4, "CGIPassAuth" of the directives of core, and ap_add_common_vars in server/util_script.c; mod_wsgi,
#   "WSGIPassAuthorization"
set -euo pipefail

folder=$(mktemp -d)
apache= fpm=
trap 'kill $apache $fpm 2>/dev/null || true; wait; rm -rf "$folder"' EXIT
cd "$folder"
chmod 755 .

for package in 'apache2-bin 2.4.71-1~deb12u1' 'php8.2-fpm 8.2.36-1~deb12u1' 'libapache2-mod-php8.2 8.2.36-1~deb12u1' \
  'libapache2-mod-wsgi-py3 4.9.4-1+b2'; do
  echo "$package"
  [ "$(dpkg-query -W -f '${Package} ${Version}' "${package% *}")" = "$package" ]
done
free() { node -e "s=net.createServer().listen(0,'127.0.0.1',()=>{console.log(s.address().port);s.close()})"; }
port=$(free)

# Four programs that say which header they got, each in a folder that passes it on, and in one that does not.
for place in plain passed debian; do
  mkdir $place
  printf '#!/bin/sh\nprintf "Content-Type: text/plain\\r\\n\\r\\n%%s" "${HTTP_AUTHORIZATION:-none}"\n' >$place/cgi
  chmod 755 $place/cgi
  # shellcheck disable=SC2016
  echo '<?php echo $_SERVER["HTTP_AUTHORIZATION"] ?? "none";' | tee $place/fpm.php >$place/mod.php
  # shellcheck disable=SC2016
  echo '<?php echo getallheaders()["Authorization"] ?? "none";' >$place/all.mod.php
  cat >$place/hook.wsgi <<'PY'
def application(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [environ.get("HTTP_AUTHORIZATION", "none").encode()]
PY
done
cat >fpm.conf <<CONF
[global]
error_log = $folder/fpm.log
[www]
user = www-data
group = www-data
listen = $folder/fpm.sock
listen.owner = www-data
pm = static
pm.max_children = 1
CONF
modules=$(for one in mpm_prefork authz_core mime alias cgi setenvif proxy proxy_fcgi; do
  echo "LoadModule ${one}_module /usr/lib/apache2/modules/mod_$one.so"
done)
cat >apache.conf <<CONF
ServerRoot $folder
PidFile $folder/apache.pid
Mutex file:$folder default
ErrorLog $folder/apache.log
TypesConfig /dev/null
ServerName localhost
Listen 127.0.0.1:$port
$modules
LoadModule php_module /usr/lib/apache2/modules/libphp8.2.so
LoadModule wsgi_module /usr/lib/apache2/modules/mod_wsgi.so
User www-data
Group www-data
DocumentRoot $folder
WSGIScriptAlias /plain/wsgi $folder/plain/hook.wsgi
WSGIScriptAlias /passed/wsgi $folder/passed/hook.wsgi
<FilesMatch ^cgi\$>
  SetHandler cgi-script
  Options +ExecCGI
</FilesMatch>
<FilesMatch mod\.php\$>
  SetHandler application/x-httpd-php
</FilesMatch>
<FilesMatch ^fpm\.php\$>
  SetHandler "proxy:unix:$folder/fpm.sock|fcgi://localhost"
</FilesMatch>
<Directory $folder/passed>
  CGIPassAuth On
  WSGIPassAuthorization On
</Directory>
<Directory $folder/debian>
  SetEnvIfNoCase ^Authorization\$ "(.+)" HTTP_AUTHORIZATION=\$1
</Directory>
CONF
php-fpm8.2 --nodaemonize --fpm-config fpm.conf >/dev/null 2>&1 &
fpm=$!
apache2 -X -f "$folder/apache.conf" &
apache=$!
for _ in $(seq 100); do
  if [ -S fpm.sock ] && (: <>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then break; fi
  sleep 0.1
done

look() { echo "$1: $(curl -sf -X POST -d '{}' -H 'Authorization: Bearer token' "http://127.0.0.1:$port/$2")"; }
{
  look CGI plain/cgi
  look PHP-FPM plain/fpm.php
  look mod_wsgi plain/wsgi
  look mod_php plain/mod.php
  look 'mod_php, getallheaders()' plain/all.mod.php
  look 'CGI, CGIPassAuth' passed/cgi
  look 'PHP-FPM, CGIPassAuth' passed/fpm.php
  look 'PHP-FPM, as Debian' debian/fpm.php
  look 'mod_php, CGIPassAuth' passed/mod.php
  look 'mod_wsgi, WSGIPassAuthorization' passed/wsgi
} | tee seen || { cat apache.log; exit 1; }
diff seen - <<'SEEN'
CGI: none
PHP-FPM: none
mod_wsgi: none
mod_php: none
mod_php, getallheaders(): Bearer token
CGI, CGIPassAuth: Bearer token
PHP-FPM, CGIPassAuth: Bearer token
PHP-FPM, as Debian: Bearer token
mod_php, CGIPassAuth: Bearer token
mod_wsgi, WSGIPassAuthorization: Bearer token
SEEN
echo 'as described'
