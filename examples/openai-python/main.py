import os

from openai import APIStatusError, OpenAI

client = OpenAI(
    base_url=os.environ.get("UAS_URL", "http://127.0.0.1:8080") + "/v1",
    api_key=os.environ["UAS_API_KEY"],
)

stream = client.chat.completions.create(
    model="demo-chat",
    messages=[{"role": "user", "content": "Hello"}],
    stream=True,
)
for chunk in stream:
    if chunk.choices:
        print(chunk.choices[0].delta.content or "", end="")
print()

try:
    client.chat.completions.create(model="none", messages=[])
except APIStatusError as error:
    print(f"{error.status_code} {error.code}, request {error.request_id}")
