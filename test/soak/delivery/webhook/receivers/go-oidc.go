// A receiver with go-oidc, as Debian has it.
package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"reflect"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"github.com/coreos/go-oidc"
)

// ahead is the clock by which go-oidc keeps the key set: ahead of the machine's by the milliseconds in a file.
func ahead() time.Time {
	text, err := os.ReadFile(os.Getenv("CLOCK"))
	if err != nil {
		panic(err)
	}
	ms, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		panic(err)
	}
	return time.Now().Add(time.Duration(ms) * time.Millisecond)
}

func main() {
	hub, port := os.Getenv("HUB"), os.Getenv("PORT")
	keys := oidc.NewRemoteKeySet(context.Background(), hub+"/.well-known/jwks.json")
	// The clock of a key set is a field that only go-oidc's own tests can set.
	field := reflect.ValueOf(keys).Elem().FieldByName("now")
	*(*func() time.Time)(unsafe.Pointer(field.UnsafeAddr())) = ahead
	verifier := oidc.NewVerifier(hub, keys, &oidc.Config{ClientID: "https://localhost:" + port + "/"})

	// Answers pushes as service.md §5.6 says: 201, and 204 for an invalid token. Prints both.
	http.HandleFunc("/", func(answer http.ResponseWriter, request *http.Request) {
		var push struct{ Message struct{ Data []byte } }
		var event struct{ Title string }
		if json.NewDecoder(request.Body).Decode(&push) != nil || json.Unmarshal(push.Message.Data, &event) != nil {
			answer.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		token := strings.TrimPrefix(request.Header.Get("Authorization"), "Bearer ")
		if _, err := verifier.Verify(request.Context(), token); err != nil {
			fmt.Println("refused", kidOf(token), event.Title, err)
			answer.WriteHeader(http.StatusNoContent)
			return
		}
		fmt.Println("taken", kidOf(token), event.Title)
		answer.WriteHeader(http.StatusCreated)
	})
	listener, err := net.Listen("tcp", "127.0.0.1:"+port)
	if err != nil {
		panic(err)
	}
	fmt.Println("listening")
	panic(http.ServeTLS(listener, nil, os.Getenv("CERT"), os.Getenv("KEY")))
}

// kidOf returns the id of the key that a token names.
func kidOf(token string) string {
	var header struct{ Kid string }
	text, err := base64.RawURLEncoding.DecodeString(strings.Split(token, ".")[0])
	if err != nil || json.Unmarshal(text, &header) != nil {
		return "?"
	}
	return header.Kid
}
