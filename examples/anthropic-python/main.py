import os

from anthropic import Anthropic, APIStatusError

client = Anthropic(
    base_url=os.environ.get("UAS_URL", "http://127.0.0.1:8080"),
    api_key=os.environ["UAS_API_KEY"],
)

with client.messages.stream(
    model="demo-chat",
    max_tokens=200,
    messages=[{"role": "user", "content": "Hello"}],
) as stream:
    for text in stream.text_stream:
        print(text, end="")
    usage = stream.get_final_message().usage
print(f"\n{usage.input_tokens} tokens in, {usage.output_tokens} out")

try:
    client.messages.create(model="none", max_tokens=200, messages=[])
except APIStatusError as error:
    print(f"{error.status_code}, request {error.request_id}")
