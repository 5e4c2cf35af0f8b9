// Command admission sends one review again and again over one connection, as an API server does,
// and prints how long each answer took, in milliseconds, as a JSON list.
package main

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"time"
)

func main() {
	url := flag.String("url", "", "where reviews are answered")
	review := flag.String("review", "", "file with an AdmissionReview")
	n := flag.Int("n", 1000, "number of reviews")
	flag.Parse()
	body, err := os.ReadFile(*review)
	if err != nil {
		log.Fatal(err)
	}
	// The certificate was made for this measurement a moment ago.
	transport := &http.Transport{
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true},
		ForceAttemptHTTP2: true, // as client-go does
	}
	client := &http.Client{Transport: transport, Timeout: 10 * time.Second}
	if _, err = ask(client, *url, body); err != nil { // this one connects
		log.Fatal(err)
	}
	took := make([]float64, *n)
	for i := range took {
		if took[i], err = ask(client, *url, body); err != nil {
			log.Fatal(err)
		}
	}
	if err = json.NewEncoder(os.Stdout).Encode(took); err != nil {
		log.Fatal(err)
	}
}

// ask returns the milliseconds until the whole answer was there.
func ask(client *http.Client, url string, body []byte) (float64, error) {
	begun := time.Now()
	answer, err := client.Post(url, "application/json", bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return 0, err
	}
	if answer.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("%s: %s", answer.Status, text)
	}
	return float64(time.Since(begun).Microseconds()) / 1000, nil
}
