package main

import (
	"context"
	"errors"
	"os/exec"
	"path/filepath"
	"strings"
)

// tool is a generator of another project.
type tool struct {
	name, version string
	fast          bool     // make test runs it
	needs         []string // programs that must be on the machine
	install       func(ctx context.Context, m *matrix) error
	run           func(ctx context.Context, j *job) error // generates, and compiles or type-checks the result
}

// missing returns a program that the tool needs and that is not installed, or "".
func (t tool) missing() string {
	for _, program := range t.needs {
		if _, err := exec.LookPath(program); err != nil {
			return program
		}
	}
	return ""
}

var (
	installOapiCodegen, oapiCodegen = installGo("github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen", "2.8.2")
	installOgen, ogen               = installGo("github.com/ogen-go/ogen/cmd/ogen", "1.24.0")

	withNode   = []string{"node", "npm"}
	withPython = []string{"python3"}
	withJava   = []string{"java", "mvn"}
)

// tools are all generators, the fast ones first. package.json and requirements.txt pin the versions that these lines repeat.
var tools = []tool{
	{"openapi-typescript", "7.13.0", true, withNode, installNode, runOpenAPITypeScript},
	{"@hey-api/openapi-ts", "0.95.0", true, withNode, installNode, runHeyAPI},
	{"openapi-to-postmanv2", "6.3.3", true, withNode, installNode, runPostman},
	{"@ivotoby/openapi-mcp-server", "1.16.1", true, withNode, installNode, runMCP},
	{"oapi-codegen", "2.8.2", true, nil, installOapiCodegen, runOapiCodegen},
	{"datamodel-code-generator", "0.89.0", false, withPython, installPython, runDatamodel},
	{"openapi-python-client", "0.29.1", false, withPython, installPython, runPythonClient},
	{"orval", "8.38.0", false, withNode, installNode, runOrval},
	{"orval with its default client", "8.38.0", false, withNode, installNode, runOrvalDefault},
	{"ogen", "1.24.0", false, nil, installOgen, runOgen},
	{"openapi-generator java", generatorVersion, false, withJava, installJar, runJava},
	{"openapi-generator go", generatorVersion, false, withJava, installJar, runGeneratedGo},
	{"openapi-generator python", generatorVersion, false, append(withPython, withJava...), installBoth, runGeneratedPython},
	{"openapi-generator typescript-fetch", generatorVersion, false, append(withNode, withJava...), installFetch, runTypeScriptFetch},
	{"openapi-generator rust", generatorVersion, false, append([]string{"cargo"}, withJava...), installJar, runRust},
}

func installBoth(ctx context.Context, m *matrix) error {
	return errors.Join(installJar(ctx, m), installPython(ctx, m))
}

func installFetch(ctx context.Context, m *matrix) error {
	return errors.Join(installJar(ctx, m), installNode(ctx, m))
}

func runOpenAPITypeScript(ctx context.Context, j *job) error {
	if err := j.generate(ctx, []string{".ts"}, j.node("openapi-typescript"), j.document, "-o", "contract.ts"); err != nil {
		return err
	}
	const use = `import createClient from "openapi-fetch";
import type { components, paths } from "./contract.js";

const client = createClient<paths>({ baseUrl: "http://127.0.0.1:8080/api/v1" });
export async function book(): Promise<components["schemas"]["Booking"] | undefined> {
  const { data, error } = await client.POST("/bookings", { body: { event_date: "2030-01-01" } });
  if (error) throw new Error(error.error.code);
  return data;
}
`
	if err := j.write("use.ts", use); err != nil {
		return err
	}
	return j.typeScript(ctx)
}

func runHeyAPI(ctx context.Context, j *job) error {
	err := j.generate(ctx, []string{".ts"}, j.node("openapi-ts"), "-i", j.document, "-o", "client", "--plugins", "@hey-api/typescript", "@hey-api/sdk", "@hey-api/client-fetch")
	if err != nil {
		return err
	}
	if err := j.typeScript(ctx); err != nil {
		return err
	}
	return j.bookWithTypeScript(ctx, "book.ts")
}

func runOrval(ctx context.Context, j *job) error {
	return j.orval(ctx, `, client: "fetch", mode: "single"`)
}

func runOrvalDefault(ctx context.Context, j *job) error {
	if err := j.orval(ctx, ""); err != nil {
		return err
	}
	return j.bookWithTypeScript(ctx, "book-orval.ts")
}

// orval runs orval with more options of its output, and type-checks the client.
func (j *job) orval(ctx context.Context, options string) error {
	config := `export default { api: { input: { target: %INPUT% }, output: { target: "client.ts"` + options + ` } } };
`
	if err := j.write("orval.config.mjs", strings.ReplaceAll(config, "%INPUT%", `"`+j.document+`"`)); err != nil {
		return err
	}
	if err := j.generate(ctx, []string{".ts"}, j.node("orval"), "--config", "orval.config.mjs"); err != nil {
		return err
	}
	return j.typeScript(ctx)
}

func runOapiCodegen(ctx context.Context, j *job) error {
	err := j.generate(ctx, []string{".go"}, oapiCodegen(j.matrix), "-generate", "types,client", "-package", "client", "-o", "client/client.gen.go", j.document)
	if err != nil {
		return err
	}
	if err := j.goModule(ctx, "github.com/oapi-codegen/runtime v1.6.0"); err != nil {
		return err
	}
	return j.bookWithGo(ctx)
}

func runOgen(ctx context.Context, j *job) error {
	if err := j.generate(ctx, []string{".go"}, ogen(j.matrix), "-target", "api", "-package", "api", "-clean", j.document); err != nil {
		return err
	}
	return j.goModule(ctx, "github.com/ogen-go/ogen v1.24.0")
}

func runPythonClient(ctx context.Context, j *job) error {
	// PDF is a binary body for the tool only if its configuration says so. The hooks would format the code with another tool.
	if err := j.write("config.yaml", "content_type_overrides: { application/pdf: application/octet-stream }\npost_hooks: []\n"); err != nil {
		return err
	}
	err := j.generate(ctx, []string{".py"}, j.python("openapi-python-client"), "generate", "--path", j.document, "--output-path", "client", "--meta", "none", "--fail-on-warning", "--config", "config.yaml")
	if err != nil {
		return err
	}
	if err := command(ctx, j.folder, j.python("mypy"), "client"); err != nil {
		return err
	}
	return j.bookWithPython(ctx)
}

func runDatamodel(ctx context.Context, j *job) error {
	err := j.generate(ctx, []string{".py"}, j.python("datamodel-codegen"), "--input", j.document, "--input-file-type", "openapi", "--output", "models.py",
		"--output-model-type", "typing.TypedDict", "--target-python-version", "3.11", "--openapi-scopes", "schemas")
	if err != nil {
		return err
	}
	return command(ctx, j.folder, j.python("mypy"), "--strict", "models.py")
}

func runPostman(ctx context.Context, j *job) error {
	if err := j.generate(ctx, []string{".json"}, j.node("openapi2postmanv2"), "-s", j.document, "-o", "collection.json", "-p"); err != nil {
		return err
	}
	return j.checkCollection(filepath.Join(j.folder, "collection.json"))
}

// openapiGenerator runs one generator of openapi-generator.
func (j *job) openapiGenerator(ctx context.Context, extension, generator string, options ...string) error {
	args := append([]string{"-jar", j.jar(), "generate", "-i", j.document, "-g", generator, "-o", "client"}, options...)
	return j.generate(ctx, []string{extension}, "java", args...)
}

func runJava(ctx context.Context, j *job) error {
	if err := j.openapiGenerator(ctx, ".java", "java", "--library", "okhttp-gson"); err != nil {
		return err
	}
	return command(ctx, filepath.Join(j.folder, "client"), "mvn", "-B", "-q", "-DskipTests", "-Dmaven.javadoc.skip", "compile")
}

func runGeneratedGo(ctx context.Context, j *job) error {
	// By default, the values of all enumerations share one namespace.
	if err := j.openapiGenerator(ctx, ".go", "go", "--additional-properties=enumClassPrefix=true"); err != nil {
		return err
	}
	folder := filepath.Join(j.folder, "client")
	return errors.Join(command(ctx, folder, "go", "mod", "tidy"), command(ctx, folder, "go", "build", "-p", "2", "./..."))
}

func runGeneratedPython(ctx context.Context, j *job) error {
	if err := j.openapiGenerator(ctx, ".py", "python"); err != nil {
		return err
	}
	// Its own configuration.py does not pass mypy. Importing the package creates all of its classes.
	return command(ctx, filepath.Join(j.folder, "client"), j.python("python"), "-W", "error", "-c", "import openapi_client")
}

func runTypeScriptFetch(ctx context.Context, j *job) error {
	if err := j.openapiGenerator(ctx, ".ts", "typescript-fetch"); err != nil {
		return err
	}
	if err := j.typeScript(ctx); err != nil {
		return err
	}
	return j.bookWithTypeScript(ctx, "book-fetch.ts")
}

func runRust(ctx context.Context, j *job) error {
	if err := j.openapiGenerator(ctx, ".rs", "rust"); err != nil {
		return err
	}
	return command(ctx, filepath.Join(j.folder, "client"), "cargo", "check", "--quiet", "--jobs", "2")
}
