package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func TestRun(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var texts []string
		if err := json.NewDecoder(r.Body).Decode(&texts); err != nil || strings.Contains(texts[0], "bad") {
			http.Error(w, "is bad", http.StatusBadRequest)
			return
		}
		_ = json.NewEncoder(w).Encode(make([][]float32, len(texts)))
	}))
	defer server.Close()
	l := load{url: server.URL, texts: []string{"a", "b", "c"}, each: 2, clients: 3, time: 20 * time.Millisecond}
	times, err := l.run(t.Context())
	if err != nil || len(times) < 3 {
		t.Errorf("%d requests, %v", len(times), err)
	}
	l.texts = []string{"bad"}
	if _, err := l.run(t.Context()); err == nil || err.Error() != "400 Bad Request: is bad\n" {
		t.Errorf("error %v", err)
	}
	if _, err := (load{}).run(t.Context()); err == nil {
		t.Error("no texts, but no error")
	}
}

func TestReport(t *testing.T) {
	var times []time.Duration
	for i := range 200 {
		times = append(times, time.Duration(200-i)*time.Millisecond)
	}
	l := load{each: 3, clients: 4, time: 2 * time.Second}
	want := "4 clients, 3 texts a request: 200 requests, 300 texts/s, p50 101ms, p99 199ms, max 200ms"
	if got := l.report(times); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
