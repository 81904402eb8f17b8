"""Files that name other files, in all ways that ffmpeg knows."""

import struct
from collections.abc import Mapping
from pathlib import Path


def openers(target: Path) -> Mapping[str, bytes]:
    """Contents of such files by a name for each; all name `target`, a real video."""
    there = str(target)
    texts = {
        "hls": "#EXTM3U\n#EXT-X-VERSION:3\n#EXT-X-TARGETDURATION:10\n#EXTINF:10,\n"
        f"{there}\n#EXT-X-ENDLIST\n",
        "hls-of-hls": f"#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\n{target.with_name('b.m3u8')}\n",
        "hls-key": '#EXTM3U\n#EXT-X-TARGETDURATION:10\n#EXT-X-KEY:METHOD=AES-128,URI="'
        f'{there}"\n#EXTINF:10,\n{there}\n#EXT-X-ENDLIST\n',
        "hls-subfile": "#EXTM3U\n#EXT-X-TARGETDURATION:10\n#EXTINF:10,\n"
        f"subfile,,start,0,end,99,,:{there}\n#EXT-X-ENDLIST\n",
        "m3u": f"#EXTM3U\n{there}\n",
        "ffconcat": f"ffconcat version 1.0\nfile '{there}'\n",
        "ffconcat-bom": f"\ufeffffconcat version 1.0\nfile '{there}'\n",
        "concat-of-concat": f"ffconcat version 1.0\nfile '{target.with_name('b.ffconcat')}'\n",
        "dash": '<?xml version="1.0"?>\n<MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="static" '
        'mediaPresentationDuration="PT9S" profiles="urn:mpeg:dash:profile:isoff-on-demand:2011">'
        '<Period><AdaptationSet mimeType="video/mp4"><Representation id="1" bandwidth="1">'
        f"<BaseURL>{there}</BaseURL></Representation></AdaptationSet></Period></MPD>\n",
        "imf": '<?xml version="1.0"?>\n<CompositionPlaylist xmlns="http://www.smpte-ra.org/schemas/'
        '2067-3/2013"><Id>urn:uuid:1</Id></CompositionPlaylist>\n',
        "sdp": "v=0\no=- 0 0 IN IP4 127.0.0.1\ns=x\nc=IN IP4 127.0.0.1\nt=0 0\n"
        "m=video 5004 RTP/AVP 96\na=rtpmap:96 H264/90000\n",
        "rtsp": f"rtsp://127.0.0.1/{there}\n",
        "concat-protocol": f"concat:{there}|{there}\n",
        "asx": f'<asx version="3.0"><entry><ref href="{there}"/></entry></asx>\n',
        "asf-reference": f"[Reference]\nRef1=http://127.0.0.1{there}\n",
        "pls": f"[playlist]\nFile1={there}\nNumberOfEntries=1\n",
        "xspf": f'<?xml version="1.0"?>\n<playlist version="1"><trackList><track><location>{there}'
        "</location></track></trackList></playlist>\n",
        "smil": f'<smil><body><video src="{there}"/></body></smil>\n',
        "vobsub": "# VobSub index file, v7 (do not modify this line!)\nid: en, index: 0\n"
        "timestamp: 00:00:01:000, filepos: 000000000\n",
        "dvd": "DVDVIDEO-VMG" + "\0" * 2048,
    }
    contents = {name: text.encode() for name, text in texts.items()}
    return {**contents, "magic-lantern": _magic_lantern()}


def _magic_lantern() -> bytes:
    """The first of four files of a camera's raw film; the other three have other suffixes."""
    head = struct.pack("<4sI8sQHHHHIIII", b"MLVI", 52, b"v2.0", 1, 0, 4, 0, 0, 1, 0, 25, 1)
    return head + bytes(4096)


def referring(path: Path, target: Path, to: Path) -> Path:
    """A copy of an mp4 whose pictures are said to lie in another file, named as QuickTime does.

    Args:
        path: an mp4 whose index lies behind its data.
        target: the file that it names.
        to: the copy.
    """
    name = str(target).encode()
    name += b"\0" * (len(name) % 2)
    alias = bytes(10) + bytes([4]) + b"disk".ljust(27, b"\0") + bytes(12)
    alias += bytes([len(target.name)]) + target.name.encode().ljust(63, b"\0") + bytes(16)
    alias += struct.pack(">hh", 1, 1) + bytes(16)
    alias += struct.pack(">hH", 2, len(name)) + name + struct.pack(">hH", -1, 0)
    entry = struct.pack(">I4sI", 12 + len(alias), b"alis", 0) + alias
    fresh = struct.pack(">I4sII", 16 + len(entry), b"dref", 0, 1) + entry
    to.write_bytes(_replaced(path.read_bytes(), b"dref", fresh))
    return to


def _replaced(boxes: bytes, kind: bytes, fresh: bytes) -> bytes:
    """Boxes of an mp4 with each one of a kind replaced, wherever it is nested."""
    out, at = b"", 0
    while at + 8 <= len(boxes):
        size, name = struct.unpack_from(">I4s", boxes, at)
        body = boxes[at + 8 : at + size]
        if name == kind:
            out += fresh
        elif name in (b"moov", b"trak", b"mdia", b"minf", b"dinf"):
            body = _replaced(body, kind, fresh)
            out += struct.pack(">I4s", 8 + len(body), name) + body
        else:
            out += boxes[at : at + size]
        at += size
    return out
