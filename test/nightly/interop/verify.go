// Reads a webhook body per line, parses it, writes it as the specification says, and prints its signature.
package main

import (
	"bufio"
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
)

func main() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var payload map[string]any
		if err := json.Unmarshal(lines.Bytes(), &payload); err != nil {
			panic(err)
		}
		var text bytes.Buffer
		encoder := json.NewEncoder(&text)
		// Without this, <, > and & become \u003c, \u003e and \u0026.
		encoder.SetEscapeHTML(false)
		if err := encoder.Encode(payload); err != nil {
			panic(err)
		}
		mac := hmac.New(sha256.New, []byte(os.Args[1]))
		mac.Write(bytes.TrimSuffix(text.Bytes(), []byte("\n")))
		fmt.Println(hex.EncodeToString(mac.Sum(nil)))
	}
}
