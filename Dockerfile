# The page, `sureshot serve`, as an account without rights:
#
#   docker build -t sureshot .
#   docker run -p 127.0.0.1:8460:8460 -v ~/Videos:/videos:ro -v sureshot:/data \
#       -v ~/.sureshot-password:/run/secrets/sureshot:ro sureshot
#   docker run -v ~/Videos:/videos:ro -v sureshot:/data sureshot index /videos
#
# The index is in the volume /data. The page listens beyond the container, so it asks for the password,
# the first line of that file, which must be the account 1000's and no one else's to read (chmod 600).

FROM python:3.13-slim AS build
COPY pyproject.toml README.md LICENSE NOTICE /source/
COPY licenses /source/licenses
COPY src /source/src
RUN python -m venv --without-pip /opt/sureshot \
    && pip --python /opt/sureshot/bin/python install --no-cache-dir /source

FROM python:3.13-slim
COPY --from=build /opt/sureshot /opt/sureshot
RUN useradd --uid 1000 --create-home sureshot \
    && mkdir /data /videos \
    && chown sureshot:sureshot /data
ENV PATH=/opt/sureshot/bin:$PATH \
    XDG_DATA_HOME=/data \
    XDG_CACHE_HOME=/data/cache
USER sureshot
WORKDIR /videos
VOLUME /data
EXPOSE 8460
ENTRYPOINT ["sureshot"]
CMD ["serve", "--host", "0.0.0.0", "--password-file", "/run/secrets/sureshot", "--root", "/videos"]
