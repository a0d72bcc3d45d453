# What the commands of tools.toml call. They run in a folder of their own. The document is $DOCUMENT.
node_tool() { "$NODE/.bin/$1" "${@:2}"; }

typescript() { # type-checks all files, as strictly as the project of a careful user
	cat >tsconfig.json <<-'JSON'
		{"compilerOptions": {"strict": true, "noEmit": true, "target": "es2022", "module": "esnext", "moduleResolution": "bundler",
		"lib": ["es2022", "dom", "dom.iterable"], "skipLibCheck": true, "types": ["node"]}, "include": ["**/*.ts"], "exclude": ["node_modules"]}
	JSON
	ln -sfn "$NODE" node_modules
	node_tool tsc -p .
}

go_module() { # MODULE VERSION: compiles all packages, which need the module
	printf 'module example.com/client\n\ngo 1.26\n\nrequire %s v%s\n' "$1" "$2" >go.mod
	go mod tidy && go build -p 2 ./...
}

openapi_generator() { java -jar "$JAR" generate -i "$DOCUMENT" -o client -g "$@"; }

orval() { # OPTIONS of the output
	echo "export default { api: { input: { target: '$DOCUMENT' }, output: { target: 'client.ts'$1 } } };" >orval.config.mjs
	node_tool orval --config orval.config.mjs && typescript
}

book() { # PROGRAM: makes a booking with the client, with Idempotency-Keys of its own, if a platform is given
	[ -n "$BASE_URL" ] || return 0
	export KEY=matrix-$RANDOM$RANDOM$RANDOM
	case $1 in
	*.go.txt) cp "$SOURCE/book/$1" main.go && go run . ;;
	*.py) cp "$SOURCE/book/$1" . && "$VENV/mypy" "$1" && "$VENV/python" "$1" ;;
	*.ts)
		cp "$SOURCE/book/$1" book.ts && node_tool tsc -p .
		node_tool esbuild book.ts --bundle --packages=external --platform=node --format=esm --outfile=book.mjs && node book.mjs
		;;
	esac
}
