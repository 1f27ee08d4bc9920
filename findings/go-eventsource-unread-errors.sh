#!/usr/bin/env bash
# Software: donovanhide/eventsource for Go (Debian golang-github-donovanhide-eventsource-dev 0.0~git20210830.c590279-2)
# Behaviour: After a stream that ended it connects again only when somebody reads the channel Errors, although its comment says that
#   nobody has to. A program that reads Events alone gets nothing more, and no error either. Where Errors is read it comes back after
#   `retry:`, with the last id. Subscribe returns an error at any first answer but 200, and does not try again.
# Seen: 2026-11-29, a stream with `retry: 200` that ends after one event, 4 s
#   Errors unread: 1 connection
#   Errors read: comes back with the id 42
#   first answer 503: 503: busy, 1 connection
# Hub: a listener that goes silent for good with the first restart of a node: docs/reading.md, "With a library".
# Source: stream.go: receiveEvents writes to Errors, an unbuffered channel, before retryRestartStream
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

version=$(dpkg-query -W -f '${Version}' golang-github-donovanhide-eventsource-dev)
echo "golang-github-donovanhide-eventsource-dev $version"
[ "$version" = 0.0~git20210830.c590279-2 ]

cat >main.go <<'GO'
package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"time"

	"github.com/donovanhide/eventsource"
)

// look returns the Last-Event-ID of each connection within four seconds.
func look(status int, readErrors bool) (ids []string, problem error) {
	var lock sync.Mutex
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		lock.Lock()
		ids = append(ids, r.Header.Get("Last-Event-ID"))
		lock.Unlock()
		if status != http.StatusOK {
			http.Error(w, "busy", status)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, "retry: 200\n\nevent: playing\nid: 42\ndata: {}\n\n")
	}))
	stream, problem := eventsource.Subscribe(server.URL, "")
	if problem == nil {
		go func() {
			for range stream.Events {
			}
		}()
		if readErrors {
			go func() {
				for range stream.Errors {
				}
			}()
		}
	}
	time.Sleep(4 * time.Second)
	lock.Lock()
	defer lock.Unlock()
	return append([]string(nil), ids...), problem
}

func main() {
	unread, _ := look(http.StatusOK, false)
	fmt.Printf("Errors unread: %d connection\n", len(unread))
	read, _ := look(http.StatusOK, true)
	if len(read) > 2 && read[1] == "42" {
		fmt.Println("Errors read: comes back with the id 42")
	} else {
		fmt.Println("Errors read:", read)
	}
	refused, problem := look(http.StatusServiceUnavailable, true)
	fmt.Printf("first answer 503: %s, %d connection\n", strings.TrimSpace(problem.Error()), len(refused))
}
GO
GO111MODULE=off GOPATH=/usr/share/gocode GOCACHE=$folder/cache go build -o look main.go
timeout 30 ./look | tee seen

cat >expected <<'TEXT'
Errors unread: 1 connection
Errors read: comes back with the id 42
first answer 503: 503: busy, 1 connection
TEXT
diff expected seen
echo 'as described'
