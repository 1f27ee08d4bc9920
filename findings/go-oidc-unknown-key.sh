#!/usr/bin/env bash
# Software: go-oidc 2.1.0 (Debian golang-github-coreos-go-oidc-dev 2.1.0-2)
# Behaviour: Keeps the key set for as long as max-age says. A genuine token of a key that is not in it is rejected without
#   asking again, unless max-age ends within 30 seconds, and the error is that of a forged token. Without max-age it asks.
# Seen: 2026-11-28, a second key published after the first fetch
#   max-age=300: failed to verify id token signature, fetches: 1
#   max-age=20: verified, fetches: 2
# Hub: HUB_KEY_LEAD is never less than the max-age of the key set: docs/webhooks.md, "What libraries do with a new key".
# Source: go-oidc, jwks.go, remoteKeySet.verify and keysExpiryDelta
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

version=$(dpkg-query -W -f '${Version}' golang-github-coreos-go-oidc-dev)
echo "golang-github-coreos-go-oidc-dev $version"
[ "$version" = 2.1.0-2 ]

cat >main.go <<'GO'
package main

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/coreos/go-oidc"
	jose "gopkg.in/square/go-jose.v2"
)

func main() {
	for _, maxAge := range []int{300, 20} {
		try(maxAge)
	}
}

func try(maxAge int) {
	var set jose.JSONWebKeySet
	fetches := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fetches++
		w.Header().Set("Cache-Control", fmt.Sprintf("public, max-age=%d", maxAge))
		json.NewEncoder(w).Encode(set)
	}))
	defer server.Close()
	keys := oidc.NewRemoteKeySet(context.Background(), server.URL)
	sign := func(kid string) string {
		key, err := rsa.GenerateKey(rand.Reader, 2048)
		check(err)
		set.Keys = append(set.Keys, jose.JSONWebKey{Key: &key.PublicKey, KeyID: kid, Algorithm: "RS256", Use: "sig"})
		private := jose.JSONWebKey{Key: key, KeyID: kid}
		signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.RS256, Key: private}, nil)
		check(err)
		signed, err := signer.Sign([]byte("{}"))
		check(err)
		token, err := signed.CompactSerialize()
		check(err)
		return token
	}
	_, err := keys.VerifySignature(context.Background(), sign("first"))
	check(err)
	said := "verified"
	if _, err := keys.VerifySignature(context.Background(), sign("second")); err != nil {
		said = err.Error()
	}
	fmt.Printf("max-age=%d: %s, fetches: %d\n", maxAge, said, fetches)
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
GO
GO111MODULE=off GOPATH=/usr/share/gocode GOFLAGS=-mod=mod go run main.go | tee seen

diff seen - <<'SEEN'
max-age=300: failed to verify id token signature, fetches: 1
max-age=20: verified, fetches: 2
SEEN
echo 'as described'
