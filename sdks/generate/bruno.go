package main

import (
	"fmt"
	"strings"
)

// The scripts run before and after each request of the collection.
const (
	brunoBefore = `const day = new Date(Date.now() + 60 * 24 * 60 * 60 * 1000);
day.setUTCDate(day.getUTCDate() + 6 - day.getUTCDay());
bru.setVar("eventDate", day.toISOString().slice(0, 10));`

	brunoAfter = `const body = res.getBody();
const object = body && Array.isArray(body.data) ? body.data[0] : body;
if (res.getStatus() < 300 && object && object.object && object.id) {
  bru.setVar(object.object.replace(/_(.)/g, (_, letter) => letter.toUpperCase()) + "Id", object.id);
}`

	brunoTest = `test("the status is 2xx", () => expect(res.getStatus()).to.be.within(200, 299));`
)

// bruno returns the files of the collection in the format of Bruno by path.
func bruno(c collection) map[string][]byte {
	files := map[string][]byte{
		"bruno/bruno.json": []byte("{\n  \"version\": \"1\",\n  \"name\": \"Holdfast\",\n  \"type\": \"collection\"\n}\n"),
		"bruno/collection.bru": []byte(blocks(
			block("auth", "mode: bearer"), block("auth:bearer", "token: {{apiKey}}"),
			block("script:pre-request", brunoBefore), block("script:post-response", brunoAfter), block("tests", brunoTest), block("docs", c.docs))),
		"bruno/environments/Local.bru": []byte(blocks(block("vars", "baseUrl: "+localURL), "vars:secret [\n  apiKey\n]\n")),
	}
	for i, f := range c.folders {
		folder := "bruno/" + f.name + "/"
		files[folder+"folder.bru"] = []byte(blocks(
			block("meta", fmt.Sprintf("name: %s\nseq: %d", f.name, i+1)), block("auth", "mode: inherit"), block("docs", f.docs)))
		for n, r := range f.requests {
			files[folder+r.name+".bru"] = []byte(brunoRequest(r, n+1))
		}
	}
	return files
}

// brunoRequest returns the file of a request.
func brunoRequest(r request, seq int) string {
	address := "{{baseUrl}}" + r.path
	if sent := sentQuery(r); sent != "" {
		address += "?" + sent
	}
	auth, body := "inherit", "none"
	if r.public {
		auth = "none"
	}
	if r.body != "" {
		body = "json"
	}
	return blocks(
		block("meta", fmt.Sprintf("name: %s\ntype: http\nseq: %d", r.name, seq)),
		block(strings.ToLower(r.method), fmt.Sprintf("url: %s\nbody: %s\nauth: %s", address, body, auth)),
		block("params:query", brunoValues(r.query)), block("headers", brunoValues(r.headers)), block("body:json", r.body), block("docs", r.docs))
}

// brunoValues returns a line for each value. A tilde marks those that are switched off.
func brunoValues(values []value) string {
	var lines []string
	for _, v := range values {
		mark := ""
		if v.off {
			mark = "~"
		}
		lines = append(lines, mark+v.name+": "+v.value)
	}
	return strings.Join(lines, "\n")
}

// block returns a block of a file, or "" if it is empty.
func block(name, content string) string {
	if content == "" {
		return ""
	}
	var out strings.Builder
	out.WriteString(name + " {\n")
	for line := range strings.Lines(content + "\n") {
		out.WriteString(strings.TrimRight("  "+line, " \n") + "\n")
	}
	out.WriteString("}\n")
	return out.String()
}

// blocks returns the blocks with a blank line between them.
func blocks(all ...string) string {
	var filled []string
	for _, b := range all {
		if b != "" {
			filled = append(filled, b)
		}
	}
	return strings.Join(filled, "\n")
}
