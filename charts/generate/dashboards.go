package main

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
)

//go:embed dashboards.yaml
var dashboardTable []byte

// dashboard is an entry of dashboards.yaml.
type dashboard struct {
	Name, Title string
	Service     bool // it has a variable for the service, by which SELECT selects too
	Panels      []panel
}

// panel is a panel, or a row if it has only a title.
type panel struct {
	Row, Title, Unit string
	Negative         bool                // values can be below 0
	Some             bool                // only some services have data
	Queries          []map[string]string // each has one expression and its legend
}

const (
	columns, width, height = 3, 8, 7 // Grafana's grid has 24 columns
	release                = `part_of="holdfast",namespace="$namespace",release="$release"`
)

var source = map[string]any{"type": "prometheus", "uid": "${datasource}"}

// dashboards returns the content of Grafana's dashboards, by file name.
func dashboards() (map[string][]byte, error) {
	var list []dashboard
	in := yaml.NewDecoder(bytes.NewReader(dashboardTable))
	in.KnownFields(true)
	if err := in.Decode(&list); err != nil {
		return nil, fmt.Errorf("dashboards.yaml: %w", err)
	}
	out := map[string][]byte{}
	for _, d := range list {
		var text bytes.Buffer
		enc := json.NewEncoder(&text)
		enc.SetEscapeHTML(false)
		enc.SetIndent("", " ")
		if err := enc.Encode(d.grafana()); err != nil {
			return nil, fmt.Errorf("%s: %w", d.Name, err)
		}
		out[d.Name+".json"] = text.Bytes()
	}
	return out, nil
}

// grafana returns the dashboard in Grafana's model.
func (d dashboard) grafana() map[string]any {
	selected, of := release, `up{part_of="holdfast"`
	variables := []any{
		map[string]any{"name": "datasource", "label": "Prometheus", "type": "datasource", "query": "prometheus", "refresh": 1},
		variable("namespace", of+`}`), variable("release", of+`,namespace="$namespace"}`),
	}
	if d.Service {
		selected += `,service="$service"`
		variables = append(variables, variable("service", of+`,namespace="$namespace",release="$release"}`))
	}
	panels, x, y := []any{}, 0, 0
	for i, p := range d.Panels {
		if p.Row != "" {
			if x > 0 {
				x, y = 0, y+height
			}
			panels = append(panels, map[string]any{"id": i + 1, "type": "row", "title": p.Row, "collapsed": false, "panels": []any{}, "gridPos": grid(0, y, 24, 1)})
			y++
			continue
		}
		panels = append(panels, p.grafana(i+1, grid(x*width, y, width, height), selected))
		if x++; x == columns {
			x, y = 0, y+height
		}
	}
	return map[string]any{
		"uid": "holdfast-" + d.Name, "title": d.Title, "tags": []string{"holdfast"}, "schemaVersion": 39, "version": 1, "editable": true,
		"refresh": "30s", "timezone": "", "time": map[string]any{"from": "now-3h", "to": "now"}, "annotations": map[string]any{"list": []any{}},
		"links": []any{map[string]any{
			"type": "dashboards", "title": "Holdfast", "tags": []string{"holdfast"}, "asDropdown": true, "includeVars": true, "keepTime": true,
		}},
		"templating": map[string]any{"list": variables}, "panels": panels,
	}
}

// variable returns a variable with the values that a label has in the series that the selector selects.
func variable(label, selector string) map[string]any {
	query := fmt.Sprintf("label_values(%s, %s)", selector, label)
	return map[string]any{
		"name": label, "label": strings.ToUpper(label[:1]) + label[1:], "type": "query", "datasource": source, "definition": query,
		"query": map[string]any{"query": query, "refId": label}, "refresh": 2, "sort": 1, "multi": false, "includeAll": false,
	}
}

func grid(x, y, w, h int) map[string]any { return map[string]any{"x": x, "y": y, "w": w, "h": h} }

func (p panel) grafana(id int, position map[string]any, selected string) map[string]any {
	targets := []any{}
	for i, query := range p.Queries {
		for expr, legend := range query {
			targets = append(targets, map[string]any{
				"refId": string(rune('A' + i)), "datasource": source, "expr": strings.ReplaceAll(expr, "SELECT", selected), "legendFormat": legend,
			})
		}
	}
	defaults := map[string]any{"unit": p.Unit, "custom": map[string]any{"fillOpacity": 8, "showPoints": "never"}}
	if p.Unit == "" {
		defaults["unit"] = "short"
	}
	if !p.Negative {
		defaults["min"] = 0
	}
	out := map[string]any{
		"id": id, "type": "timeseries", "title": p.Title, "datasource": source, "gridPos": position, "targets": targets,
		"fieldConfig": map[string]any{"defaults": defaults, "overrides": []any{}},
		"options": map[string]any{
			"legend": map[string]any{"displayMode": "list", "placement": "bottom"}, "tooltip": map[string]any{"mode": "multi", "sort": "desc"},
		},
	}
	if p.Some {
		out["description"] = "Only some services have data."
	}
	return out
}
